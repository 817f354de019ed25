"""Models of our own: responders without a network, and a lean way to a server."""
