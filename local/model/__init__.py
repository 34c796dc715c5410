"""A model that answers on this machine: Amazon Bedrock's Converse and ConverseStream over loopback HTTP."""
