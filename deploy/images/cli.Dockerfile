# cli: the command line `sluice`, for what reads Kafka or segment stores where they are. Built by deploy/images/build,
# which makes the runtime image first. custom-resources, the operator of the component of that name, is the same with
# another part of its packages.
ARG BUILD_IMAGE=python:3.11-slim-bookworm
ARG RUNTIME_IMAGE=sluice/runtime

FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build
ARG TARGETARCH
WORKDIR /build
ARG PACKAGES="cli shared[archive]"
COPY requirements.lock deploy/images/locked.py deploy/images/assemble ./
COPY shared/pyproject.toml shared/
COPY shared/client/pyproject.toml shared/client/
COPY cli/pyproject.toml cli/
RUN --mount=type=secret,id=ca --mount=type=secret,id=pip \
    ./assemble packages ${PACKAGES} shared/client -- "shared[journal,service]"
COPY shared/client/sluice_client shared/client/sluice_client
COPY cli/sluice_cli cli/sluice_cli
RUN ./assemble code shared/client sluice_client && ./assemble code cli sluice_cli

FROM ${RUNTIME_IMAGE}
COPY --from=build /opt/sluice/lib /opt/sluice/lib
COPY --from=build /opt/sluice/app /opt/sluice/app
COPY deploy/images/sluice /usr/local/bin/sluice
ENTRYPOINT ["sluice"]
ARG TITLE=sluice-cli
LABEL org.opencontainers.image.title="${TITLE}" \
    org.opencontainers.image.description="The command line of Sluice."
