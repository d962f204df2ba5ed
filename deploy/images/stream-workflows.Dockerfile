# stream-workflows. Built by deploy/images/build, which makes the runtime image first.
ARG BUILD_IMAGE=python:3.11-slim-bookworm
ARG RUNTIME_IMAGE=sluice/runtime

FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build
ARG TARGETARCH
WORKDIR /build
COPY requirements.lock deploy/images/locked.py deploy/images/assemble ./
COPY shared/pyproject.toml shared/
COPY services/stream-workflows/pyproject.toml services/stream-workflows/
RUN --mount=type=secret,id=ca --mount=type=secret,id=pip \
    ./assemble packages services/stream-workflows -- "shared[journal,service]"
COPY services/stream-workflows/stream_workflows services/stream-workflows/stream_workflows
RUN ./assemble code services/stream-workflows stream_workflows

FROM ${RUNTIME_IMAGE}
COPY --from=build /opt/sluice/lib /opt/sluice/lib
COPY --from=build /opt/sluice/app /opt/sluice/app
EXPOSE 10100
ENTRYPOINT ["python3", "-m", "stream_workflows"]
LABEL org.opencontainers.image.title="sluice-stream-workflows" \
    org.opencontainers.image.description="Scopes, streams, reader groups and key-value tables: decisions and long operations."
