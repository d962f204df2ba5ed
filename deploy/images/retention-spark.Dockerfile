# retention-spark: the only image with a Java runtime, Spark and Spark's jars for Kafka. Driver and executors alike.
ARG BUILD_IMAGE=python:3.11-slim-bookworm
ARG RUNTIME_IMAGE=sluice/runtime
ARG JRE_IMAGE=eclipse-temurin:17-jre
ARG JARS_IMAGE=sluice/spark-jars

FROM ${JRE_IMAGE} AS jre
FROM --platform=$BUILDPLATFORM ${JARS_IMAGE} AS jars

FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build
ARG TARGETARCH
WORKDIR /build
COPY requirements.lock deploy/images/locked.py deploy/images/assemble ./
COPY shared/pyproject.toml shared/
COPY services/retention-spark/pyproject.toml services/retention-spark/
RUN --mount=type=secret,id=ca --mount=type=secret,id=pip \
    ./assemble packages services/retention-spark -- "shared[journal,service]"
# Parts of Spark that no query here uses: more than a third of it.
RUN cd /opt/sluice/lib/pyspark && rm -rf examples data R licenses python/lib/*.txt && cd jars && rm -f \
    hive-* spark-hive* datanucleus-* derby* spark-mllib_* breeze* arpack* lapack* blas-* spire* spark-graphx_* \
    spark-yarn_* hadoop-yarn-* spark-hive-thriftserver* spark-sparkr* jpam-* libfb303* libthrift*
COPY services/retention-spark/retention_spark services/retention-spark/retention_spark
RUN ./assemble code services/retention-spark retention_spark

FROM ${RUNTIME_IMAGE}
COPY --from=jre /opt/java/openjdk /opt/java/openjdk
COPY --from=jars / /opt/spark-jars
COPY --from=build /opt/sluice/lib /opt/sluice/lib
COPY deploy/images/spark-executor /opt/sluice/bin/spark-executor
COPY --from=build /opt/sluice/app /opt/sluice/app
ENV JAVA_HOME=/opt/java/openjdk \
    SLUICE_SPARK_JARS=/opt/spark-jars \
    SLUICE_SPARK_LOCAL=/tmp/spark \
    PATH=/opt/java/openjdk/bin:/usr/local/bin:/usr/bin:/bin
EXPOSE 10100
ENTRYPOINT ["python3", "-m", "retention_spark"]
LABEL org.opencontainers.image.title="sluice-retention-spark" \
    org.opencontainers.image.description="Scaling and retention: two streaming queries that decide, say why, and ask."
