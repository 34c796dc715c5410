"""The WebSocket API of the template, as API Gateway plays it: who may connect, what becomes of frames, @connections."""
