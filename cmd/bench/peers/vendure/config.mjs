// The settings of a Vendure server, as its production template has them where they matter for
// carts: Postgres, a built schema, jobs in the database, search on. `make peers` sets DATABASE_URL
// and ADDR; see docs/performance.md.
import { DefaultJobQueuePlugin, DefaultLogger, DefaultSearchPlugin, LogLevel } from '@vendure/core';

const [hostname, port] = (process.env.ADDR ?? '127.0.0.1:3000').split(':');

export const config = {
  apiOptions: { hostname, port: Number(port), cors: { origin: ['http://127.0.0.1'], credentials: true } },
  authOptions: {
    tokenMethod: ['bearer'],
    superadminCredentials: { identifier: 'superadmin', password: 'not the default one' },
    cookieOptions: { secret: 'the secret of the comparison' },
  },
  dbConnectionOptions: { type: 'postgres', url: process.env.DATABASE_URL, synchronize: false, logging: false },
  paymentOptions: { paymentMethodHandlers: [] },
  logger: new DefaultLogger({ level: LogLevel.Info }),
  plugins: [
    DefaultJobQueuePlugin.init({ useDatabaseForBuffer: true }),
    DefaultSearchPlugin.init({ bufferUpdates: false, indexStockStatus: true }),
  ],
};
