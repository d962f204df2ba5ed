# api-gateway. Built by deploy/images/build, which makes the runtime image first.
ARG BUILD_IMAGE=python:3.11-slim-bookworm
ARG RUNTIME_IMAGE=sluice/runtime

FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build
ARG TARGETARCH
WORKDIR /build
COPY requirements.lock deploy/images/locked.py deploy/images/assemble ./
COPY shared/pyproject.toml shared/
COPY services/api-gateway/pyproject.toml services/api-gateway/
RUN --mount=type=secret,id=ca --mount=type=secret,id=pip \
    ./assemble packages "services/api-gateway[archive]" -- "shared[journal,service]"
COPY services/api-gateway/api_gateway services/api-gateway/api_gateway
RUN ./assemble code services/api-gateway api_gateway

FROM ${RUNTIME_IMAGE}
COPY --from=build /opt/sluice/lib /opt/sluice/lib
COPY --from=build /opt/sluice/app /opt/sluice/app
EXPOSE 9090 10080
ENTRYPOINT ["python3", "-m", "api_gateway"]
LABEL org.opencontainers.image.title="sluice-api-gateway" \
    org.opencontainers.image.description="The edge of Sluice: the gRPC and REST interfaces of a Pravega controller."
