"""The pictures of README and docs, made from what the commands print on the lab and from the code itself."""
