"""How a model's reply is judged before it is spoken; `checked_reply` has the order."""
