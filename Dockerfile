# The relocatable folder of tools/package on a slim Debian: CPUs only (docs/install.md).
#
#     docker build -t decent-train .
#     docker run --rm decent-train configs/digits.yaml --workers 2
#     docker run --rm -v "$PWD:/work" -w /work decent-train recipe.yaml --workers 4
FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git
COPY . /src
WORKDIR /src
RUN tools/setup
RUN tools/package --output /out && mv /out/decent-train-* /out/decent-train

FROM debian:12-slim
COPY --from=build /out/decent-train /opt/decent-train
RUN ln -s /opt/decent-train/bin/decent-train /usr/local/bin/decent-train
WORKDIR /opt/decent-train
ENTRYPOINT ["decent-train"]
CMD ["--help"]
