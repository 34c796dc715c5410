"""The AWS API on this machine: moto's services behind a server that knows who calls, and refuses what AWS would."""
