# Two stages: the final image has no compiler.
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# .dockerignore limits what is copied.
COPY . .
RUN cargo build --profile dist --features rego --locked --bin capstan

# The binary needs only the C library.
FROM debian:stable-slim
COPY --from=build /src/target/dist/capstan /usr/local/bin/capstan
COPY policy /usr/share/capstan/policy
# `capstan serve` keeps its data in /data/log and its guard in /data/log.guard, so
# both are on the volume and the guard survives a restore of the directory.
RUN install -d -o 65532 -g 65532 -m 0700 /data
USER 65532:65532
VOLUME /data
ENV CAPSTAN_DATA=/data/log CAPSTAN_LISTEN=0.0.0.0:8787
EXPOSE 8787
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=10s CMD ["capstan", "health"]
ENTRYPOINT ["capstan"]
CMD ["serve"]
