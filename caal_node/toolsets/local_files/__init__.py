"""What the toolsets that read files of this machine share: which they may, and what is in one."""
