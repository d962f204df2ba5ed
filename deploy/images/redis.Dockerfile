# The Redis of the dev overlay of deploy/k8s: the server of the locked environment, as `make run` starts it.
ARG BASE_IMAGE=python:3.11-slim-bookworm
ARG REDIS_IMAGE

FROM ${REDIS_IMAGE} AS redis

FROM ${BASE_IMAGE}
COPY --from=redis /redis-server /usr/local/bin/redis-server
USER 10001:10001
WORKDIR /tmp
HEALTHCHECK NONE
ENTRYPOINT ["redis-server"]
ARG VERSION
LABEL org.opencontainers.image.title="sluice-redis" \
    org.opencontainers.image.version="${VERSION}"
