# The command `anymix`, with what it needs to exchange sources:
#   docker build -t anymix .
#   docker run --rm --network none --user "$(id -u):$(id -g)" -v "$PWD:/data" anymix source check north south
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/*.whl)[exchange]" && rm -r /wheels \
    && useradd --create-home anymix
# An account without a home can still be given with --user.
ENV HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER anymix
WORKDIR /data
ENTRYPOINT ["anymix"]
CMD ["--help"]
