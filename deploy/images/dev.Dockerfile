# dev: `sluice dev`, a whole Pravega in one process, in memory, for tests. Built by deploy/images/build, which makes the
# runtime image first. Clients come to 127.0.0.1, so a port is published under its own number.
ARG BUILD_IMAGE=python:3.11-slim-bookworm
ARG RUNTIME_IMAGE=sluice/runtime

FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build
ARG TARGETARCH
WORKDIR /build
COPY requirements.lock deploy/images/locked.py deploy/images/assemble ./
COPY shared/pyproject.toml shared/
COPY shared/client/pyproject.toml shared/client/
COPY services/api-gateway/pyproject.toml services/api-gateway/
COPY services/cluster-manager/pyproject.toml services/cluster-manager/
COPY services/stream-workflows/pyproject.toml services/stream-workflows/
COPY services/txn-manager/pyproject.toml services/txn-manager/
COPY cli/pyproject.toml cli/
COPY dev/pyproject.toml dev/
RUN --mount=type=secret,id=ca --mount=type=secret,id=pip \
    ./assemble packages dev "shared[grpc]" shared/client services/api-gateway services/cluster-manager \
    services/stream-workflows services/txn-manager cli -- "shared[journal,service]"
COPY shared/client/sluice_client shared/client/sluice_client
COPY services/api-gateway/api_gateway services/api-gateway/api_gateway
COPY services/cluster-manager/cluster_manager services/cluster-manager/cluster_manager
COPY services/stream-workflows/stream_workflows services/stream-workflows/stream_workflows
COPY services/txn-manager/txn_manager services/txn-manager/txn_manager
COPY cli/sluice_cli cli/sluice_cli
COPY dev/sluice_dev dev/sluice_dev
RUN ./assemble code shared/client sluice_client && ./assemble code services/api-gateway api_gateway && \
    ./assemble code services/cluster-manager cluster_manager && \
    ./assemble code services/stream-workflows stream_workflows && \
    ./assemble code services/txn-manager txn_manager && ./assemble code cli sluice_cli && \
    ./assemble code dev sluice_dev

FROM ${RUNTIME_IMAGE}
COPY --from=build /opt/sluice/lib /opt/sluice/lib
COPY --from=build /opt/sluice/app /opt/sluice/app
EXPOSE 9090 10080 12345
ENTRYPOINT ["python3", "-m", "sluice_dev", "--host", "0.0.0.0", "--published", "127.0.0.1"]
LABEL org.opencontainers.image.title="sluice-dev" \
    org.opencontainers.image.description="A whole Pravega in one process, in memory, for tests."
