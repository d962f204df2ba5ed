"""stream-workflows: decides the requests on scopes and streams and sees the workflows through on the segment stores."""
