# cluster-manager. Built by deploy/images/build, which makes the runtime image first.
ARG BUILD_IMAGE=python:3.11-slim-bookworm
ARG RUNTIME_IMAGE=sluice/runtime

FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build
ARG TARGETARCH
WORKDIR /build
COPY requirements.lock deploy/images/locked.py deploy/images/assemble ./
COPY shared/pyproject.toml shared/
COPY services/cluster-manager/pyproject.toml services/cluster-manager/
RUN --mount=type=secret,id=ca --mount=type=secret,id=pip \
    ./assemble packages services/cluster-manager -- "shared[journal,service]"
COPY services/cluster-manager/cluster_manager services/cluster-manager/cluster_manager
RUN ./assemble code services/cluster-manager cluster_manager

FROM ${RUNTIME_IMAGE}
COPY --from=build /opt/sluice/lib /opt/sluice/lib
COPY --from=build /opt/sluice/app /opt/sluice/app
EXPOSE 10100
ENTRYPOINT ["python3", "-m", "cluster_manager"]
LABEL org.opencontainers.image.title="sluice-cluster-manager" \
    org.opencontainers.image.description="Which segment stores live, and which container runs on which of them."
