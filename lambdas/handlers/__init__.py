"""One thin file per Lambda function: parse the event, call one use case, map its outcome."""
