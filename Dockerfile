# Trains the policy of `make demo` on the CPU and compares it:
#   docker build -t snake-gym . && docker run -v snake-runs:/home/snake/snake_gym/runs snake-gym
FROM python:3.13-slim
RUN apt-get update && apt-get install -y --no-install-recommends make && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home snake && install -d -o snake -g snake /home/snake/snake_gym /home/snake/snake_gym/runs
USER snake
WORKDIR /home/snake/snake_gym
COPY --chown=snake:snake . .
ENV EXTRAS=train,render TORCH_FLAGS="--extra-index-url https://download.pytorch.org/whl/cpu"
RUN make install
CMD ["make", "demo"]
