"""What makes functions run: queue and stream mappings, schedules, asynchronous invocations.

SNS subscriptions of functions and EventBridge rules will have their modules here.
"""
