"""What real model servers sent, and the script that records it again."""
