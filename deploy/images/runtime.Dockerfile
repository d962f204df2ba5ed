# What all services stand on: Python, the shared library with its packages, a user that is not root. No service by itself.
ARG BASE_IMAGE=python:3.11-slim-bookworm
ARG BUILD_IMAGE=${BASE_IMAGE}

FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build
ARG TARGETARCH
WORKDIR /build
COPY requirements.lock deploy/images/locked.py deploy/images/assemble ./
COPY shared/pyproject.toml shared/
RUN --mount=type=secret,id=ca --mount=type=secret,id=pip ./assemble packages "shared[journal,service]"
# A name and a home for the user: Java and Hadoop do not do without.
RUN { cat /etc/passwd && echo 'sluice:x:10001:10001::/tmp:/bin/false'; } >/opt/sluice/passwd
# Where librdkafka looks for the authorities that a provider of tokens is trusted by.
RUN mkdir -p /opt/sluice/pki/tls/certs && \
    ln -s /etc/ssl/certs/ca-certificates.crt /opt/sluice/pki/tls/certs/ca-bundle.crt
COPY shared/sluice shared/sluice
RUN ./assemble code shared sluice

FROM ${BASE_IMAGE}
COPY --from=build /opt/sluice/passwd /etc/passwd
COPY --from=build /opt/sluice/pki /etc/pki
COPY --from=build /opt/sluice/lib /opt/sluice/lib
COPY --from=build /opt/sluice/app /opt/sluice/app
# By default glibc has 8 arenas for each core, and what is freed in one stays there (docs/security.md).
# A fetch in which a broker names the leaders of some partitions, and none of others, has librdkafka read memory that it
# has not written (its issue 5280): when a single broker came back, one process in thirty ended by SIGSEGV.
# With these, what is not written says partition 2139062143, and is passed over (tests/unit/kafka/test_unwritten.py).
ENV MALLOC_ARENA_MAX=2 \
    GLIBC_TUNABLES=glibc.malloc.tcache_max=128:glibc.malloc.perturb=128 \
    PATH=/usr/local/bin:/usr/bin:/bin \
    PYTHONPATH=/opt/sluice/app:/opt/sluice/lib \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    SLUICE_HOST=::
# By number, so that Kubernetes can see that it is not root.
USER 10001:10001
WORKDIR /tmp
HEALTHCHECK NONE
ARG VERSION
LABEL org.opencontainers.image.vendor="Sluice" \
    org.opencontainers.image.version="${VERSION}"
