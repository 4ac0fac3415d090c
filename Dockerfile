# Only bundlers need development dependencies.
FROM node:24-slim AS pages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Its own step makes the prepared database, behind the copied files.
RUN npm ci --ignore-scripts
COPY server server
COPY shared shared
COPY client client
RUN node server/package/pageBuild.ts && node server/package/migrated.ts && node server/package/serviceBundle.ts

FROM node:24-slim
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --omit=dev --omit=optional
# The command line calls other services with the client; the guides are pages of the service.
COPY server server
COPY shared shared
COPY client client
COPY docs docs
COPY README.md ./
COPY --from=pages /app/dist/pages dist/pages
COPY --from=pages /app/server/database/embedded/migrated.tar.zst server/database/embedded/
COPY --from=pages /app/dist/service dist/service
RUN mkdir -m 700 /data && chown node /data
USER node
# Less memory: password hashing keeps what it used in each arena.
ENV MALLOC_ARENA_MAX=2
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 3000}/health/ready`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=4", "server/boot/main.js"]
