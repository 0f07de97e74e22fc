"""Reading what authors write in the notes of their Webhook nodes."""
