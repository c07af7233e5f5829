"""The Spark job: plan, scan, merge, publish. The only package that imports pyspark."""
