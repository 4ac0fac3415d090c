FROM node:24-slim
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --omit=optional
COPY server server
COPY shared shared
COPY README.md README.md
COPY docs docs
RUN mkdir -m 700 /data && chown node /data
USER node
ENV HOST=0.0.0.0 DATA_DIR=/data
EXPOSE 3000
CMD ["node", "server/main.ts"]
