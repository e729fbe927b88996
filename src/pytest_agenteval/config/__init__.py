"""Settings: the option table, the project file, connections and environment references."""
