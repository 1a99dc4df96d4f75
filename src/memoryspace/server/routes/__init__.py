"""The routes of the REST interface: thin, each one verb of the door."""
