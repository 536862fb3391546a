"""What is given to people: the wheel and the source archive (``dist``), and the Debian package (``deb``)."""
