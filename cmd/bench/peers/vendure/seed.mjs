// Creates the schema and ten products with stock, and writes the ids of their variants to the file
// SEED as JSON.
import { bootstrap, ProductVariantService, RequestContextService } from '@vendure/core';
import { populate } from '@vendure/core/cli/index.js';
import { writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { config } from './config.mjs';

const initialData = {
  defaultLanguage: 'en',
  defaultZone: 'Middle East',
  countries: [{ name: 'Saudi Arabia', code: 'SA', zone: 'Middle East' }],
  taxRates: [{ name: 'Standard', percentage: 15 }],
  shippingMethods: [],
  paymentMethods: [],
  collections: [],
};

const columns = 'name,slug,description,assets,facets,optionGroups,optionValues,sku,price,taxCategory,stockOnHand,trackInventory,variantAssets,variantFacets';
const products = Array.from({ length: 10 }, (_, i) =>
  `Game credit ${i},game-credit-${i},Credit for a game,,,,,CREDIT-${i},10.0${i},Standard,1000000,true,,`);

const dir = mkdtempSync(join(tmpdir(), 'vendure'));
const csv = join(dir, 'products.csv');
writeFileSync(csv, [columns, ...products].join('\n') + '\n');

const schema = { ...config.dbConnectionOptions, synchronize: true };
const app = await populate(() => bootstrap({ ...config, dbConnectionOptions: schema }), initialData, csv);
const ctx = await app.get(RequestContextService).create({ apiType: 'admin' });
const variants = await app.get(ProductVariantService).findAll(ctx);
await app.close();
rmSync(dir, { recursive: true });
writeFileSync(process.env.SEED, JSON.stringify({ variants: variants.items.map(v => String(v.id)) }));
process.exit(0);
