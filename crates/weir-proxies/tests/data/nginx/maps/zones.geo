192.0.2.0-192.0.2.255 documentation;
