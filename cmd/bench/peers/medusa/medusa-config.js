// The settings of a Medusa server for production: Postgres, and Redis for sessions, caching,
// events, workflows and locks. Like a production server, it leaves events and jobs to a worker,
// which does not run here. The pages of the admin are off, because nothing opens them. `make peers`
// sets DATABASE_URL and REDIS_URL; see docs/performance.md.
const { defineConfig } = require('@medusajs/framework/utils')

const redis = { redisUrl: process.env.REDIS_URL }

module.exports = defineConfig({
  admin: { disable: true },
  projectConfig: {
    databaseUrl: process.env.DATABASE_URL,
    databaseDriverOptions: { connection: { ssl: false } },
    redisUrl: process.env.REDIS_URL,
    workerMode: 'server',
    http: {
      storeCors: 'http://127.0.0.1',
      adminCors: 'http://127.0.0.1',
      authCors: 'http://127.0.0.1',
      jwtSecret: 'the secret of the comparison',
      cookieSecret: 'the secret of the comparison',
    },
  },
  modules: [
    {
      resolve: '@medusajs/medusa/caching',
      options: {
        providers: [{ resolve: '@medusajs/caching-redis', id: 'caching-redis', is_default: true, options: redis }],
      },
    },
    { resolve: '@medusajs/medusa/event-bus-redis', options: redis },
    { resolve: '@medusajs/medusa/workflow-engine-redis', options: { redis } },
    {
      resolve: '@medusajs/medusa/locking',
      options: {
        providers: [{ resolve: '@medusajs/medusa/locking-redis', id: 'locking-redis', is_default: true, options: redis }],
      },
    },
  ],
})
