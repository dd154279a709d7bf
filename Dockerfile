# pallas-lint as the command of a container: docker run --rm -v "$PWD:/src:ro" IMAGE [OPTION ...] [PATH ...]
FROM python:3.12-slim AS build
COPY pyproject.toml README.md LICENSE /source/
COPY pallas_lint /source/pallas_lint
COPY rules /source/rules
COPY server /source/server
RUN python -m venv /opt/pallas-lint && /opt/pallas-lint/bin/pip install --no-cache-dir /source

FROM python:3.12-slim
COPY --from=build /opt/pallas-lint /opt/pallas-lint
RUN useradd --create-home lint
USER lint
WORKDIR /src
ENTRYPOINT ["/opt/pallas-lint/bin/pallas-lint"]
