"""Spark as the scripts use it."""

import os

from pyspark.sql import SparkSession


def spark_session(name, master, **local):
    """A session in this process (`local[*]`), or on the cluster with this master. `local` are settings for this process
    alone, with _ in place of each dot."""
    settings = {"spark.log.level": "ERROR", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        settings |= {setting.replace("_", "."): value for setting, value in local.items()}
    builder = SparkSession.builder.appName(name).master(master)
    for setting, value in settings.items():
        builder = builder.config(setting, value)
    return builder.getOrCreate()
