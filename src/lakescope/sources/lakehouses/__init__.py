"""Delta and Iceberg: folders whose log says which data files are the table."""
