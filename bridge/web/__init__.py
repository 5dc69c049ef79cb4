"""The remote display: a server of one web page and its stream, and the page itself.

    node --(ZeroMQ: raw, event, terrain ...)--> server --(one websocket)--> page in a browser

The server is a subscriber like any other and may run on another PC; the node does not know that it exists. A page gets
the newest state and nothing older, and it says which frame it has drawn before it gets another one but the next.
"""
