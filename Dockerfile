# syntax=docker/dockerfile:1
# caal-node with local speech. The worker is the default command; `control`, `page` and all other
# commands of caal-node run in the same image:
#   docker build -t caal-node .
#   docker build -t caal-node --build-arg EXTRAS="local-speech toolsets" .   (extras of pyproject.toml)

FROM node:22-bookworm-slim AS page
WORKDIR /src/caal_node/page/client
COPY caal_node/page/client/package.json caal_node/page/client/package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY caal_node/page/client ./
RUN npm run build

FROM python:3.11-slim-bookworm AS build
ARG EXTRAS="local-speech"
ENV UV_PROJECT_ENVIRONMENT=/opt/caal-node UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy \
    UV_COMPILE_BYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN pip install --root-user-action=ignore uv==0.13.9
WORKDIR /src
# What the lock names, with its hashes; it stays as it is while only the source changes.
COPY pyproject.toml uv.lock ./
# hadolint ignore=SC2046
RUN uv sync --frozen --no-cache --no-install-project $(printf -- '--extra %s ' $EXTRAS)
COPY . .
COPY --from=page /src/caal_node/page/static caal_node/page/static
# hadolint ignore=SC2046
RUN uv sync --frozen --no-cache --no-editable $(printf -- '--extra %s ' $EXTRAS)

FROM python:3.11-slim-bookworm
LABEL org.opencontainers.image.title="caal-node" \
      org.opencontainers.image.description="Local LLMs that use tools by voice, in a LiveKit room" \
      org.opencontainers.image.licenses="Apache-2.0"
# Files of the mounted /config must belong to this user or to root.
RUN useradd --uid 1000 --home-dir /var/lib/caal-node --shell /usr/sbin/nologin caal-node \
    && install -d -o caal-node -g caal-node -m 700 /var/lib/caal-node \
    && install -d -o caal-node -g caal-node /config
COPY --from=build /opt/caal-node /opt/caal-node
ENV PATH=/opt/caal-node/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    CAAL_STATE=/var/lib/caal-node/state CAAL_CACHE=/var/lib/caal-node/cache
USER 1000
# caal.toml and mcp_servers.json are read here.
WORKDIR /config
VOLUME ["/var/lib/caal-node"]
HEALTHCHECK --interval=60s --timeout=20s --start-period=60s --retries=3 CMD ["caal-node", "health"]
ENTRYPOINT ["caal-node"]
CMD ["start"]
