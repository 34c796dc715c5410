"""CloudWatch on this machine: the numbers that functions and services report, and the template's alarms over them."""
