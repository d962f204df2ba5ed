# txn-manager. Built by deploy/images/build, which makes the runtime image first.
ARG BUILD_IMAGE=python:3.11-slim-bookworm
ARG RUNTIME_IMAGE=sluice/runtime

FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build
ARG TARGETARCH
WORKDIR /build
COPY requirements.lock deploy/images/locked.py deploy/images/assemble ./
COPY shared/pyproject.toml shared/
COPY services/txn-manager/pyproject.toml services/txn-manager/
RUN --mount=type=secret,id=ca --mount=type=secret,id=pip \
    ./assemble packages "services/txn-manager[statistics]" -- "shared[journal,service]"
COPY services/txn-manager/txn_manager services/txn-manager/txn_manager
RUN ./assemble code services/txn-manager txn_manager

FROM ${RUNTIME_IMAGE}
COPY --from=build /opt/sluice/lib /opt/sluice/lib
COPY --from=build /opt/sluice/app /opt/sluice/app
EXPOSE 10100
ENTRYPOINT ["python3", "-m", "txn_manager"]
LABEL org.opencontainers.image.title="sluice-txn-manager" \
    org.opencontainers.image.description="Transactions: their leases, their commits in batches, their end when nobody pings them."
