"""What comes in from outside: events of declared sources and uploads, until they are jobs or letters."""
