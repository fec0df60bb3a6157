# Two stages: build with a compiler, run without one.
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# What comes along is listed in .dockerignore.
COPY . .
RUN cargo build --profile dist --features rego --locked --bin capstan

# The binary needs the C library and nothing else.
FROM debian:stable-slim
COPY --from=build /src/target/dist/capstan /usr/local/bin/capstan
COPY policy /usr/share/capstan/policy
# `capstan serve` keeps its state in /data/log and its guard beside that, in
# /data/log.guard, so both are on the volume and the guard outlives a restore
# of the directory.
RUN install -d -o 65532 -g 65532 -m 0700 /data
USER 65532:65532
VOLUME /data
ENV CAPSTAN_DATA=/data/log CAPSTAN_LISTEN=0.0.0.0:8787
EXPOSE 8787
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=10s CMD ["capstan", "health"]
ENTRYPOINT ["capstan"]
CMD ["serve"]
