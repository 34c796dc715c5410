"""Lambda on this machine: functions run in child processes of their own, one invocation at a time each."""
