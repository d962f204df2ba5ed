# The programs of others that the dev overlay of deploy/k8s runs beside the services: a Java runtime, and the jars that
# `make setup` has fetched for one of them (Kafka; ZooKeeper, BookKeeper and Pravega's segment store). What is run, and
# with which settings, stands in the manifests.
ARG BASE_IMAGE=python:3.11-slim-bookworm
ARG JRE_IMAGE=eclipse-temurin:17-jre
ARG JARS_IMAGE

FROM ${JRE_IMAGE} AS jre
FROM --platform=$BUILDPLATFORM ${JARS_IMAGE} AS jars

FROM ${BASE_IMAGE}
COPY --from=jre /opt/java/openjdk /opt/java/openjdk
COPY --from=jars / /opt/jars
ENV JAVA_HOME=/opt/java/openjdk \
    CLASSPATH=/opt/jars/* \
    PATH=/opt/java/openjdk/bin:/usr/local/bin:/usr/bin:/bin
USER 10001:10001
WORKDIR /tmp
HEALTHCHECK NONE
ENTRYPOINT ["java", "-XX:+UseSerialGC", "-Djava.awt.headless=true"]
ARG TITLE
ARG VERSION
LABEL org.opencontainers.image.title="${TITLE}" \
    org.opencontainers.image.version="${VERSION}"
