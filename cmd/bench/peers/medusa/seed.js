// Creates a region, a sales channel with its publishable key, a stock location and ten products
// with stock, with Medusa's own workflows. Writes the key, the region and the ids of the variants to
// the file SEED as JSON.
const flows = require('@medusajs/medusa/core-flows')
const { writeFileSync } = require('node:fs')
const { ContainerRegistrationKeys, Modules } = require('@medusajs/framework/utils')

const currency_code = 'sar'

exports.__esModule = true
exports.default = async function seed({ container }) {
  const run = async (workflow, input) => (await workflow(container).run({ input })).result

  const [channel] = await run(flows.createSalesChannelsWorkflow, { salesChannelsData: [{ name: 'Storefront' }] })
  const [key] = await run(flows.createApiKeysWorkflow, {
    api_keys: [{ title: 'Storefront', type: 'publishable', created_by: '' }],
  })
  await run(flows.linkSalesChannelsToApiKeyWorkflow, { id: key.id, add: [channel.id] })

  const [region] = await run(flows.createRegionsWorkflow, {
    regions: [{ name: 'Saudi Arabia', currency_code, countries: ['sa'], payment_providers: ['pp_system_default'] }],
  })
  await run(flows.createTaxRegionsWorkflow, [
    { country_code: 'sa', provider_id: 'tp_system', default_tax_rate: { name: 'Standard', code: 'standard', rate: 15 } },
  ])

  const [location] = await run(flows.createStockLocationsWorkflow, { locations: [{ name: 'Warehouse' }] })
  await run(flows.linkSalesChannelsToStockLocationWorkflow, { id: location.id, add: [channel.id] })
  const profile =
    (await container.resolve(Modules.FULFILLMENT).listShippingProfiles({ type: 'default' }))[0] ??
    (await run(flows.createShippingProfilesWorkflow, { data: [{ name: 'Default', type: 'default' }] }))[0]

  const products = await run(flows.createProductsWorkflow, {
    products: Array.from({ length: 10 }, (_, i) => ({
      title: `Game credit ${i}`,
      handle: `game-credit-${i}`,
      status: 'published',
      shipping_profile_id: profile.id,
      sales_channels: [{ id: channel.id }],
      options: [{ title: 'Kind', values: ['Code'] }],
      variants: [{ title: 'Code', sku: `CREDIT-${i}`, options: { Kind: 'Code' }, prices: [{ amount: 10, currency_code }] }],
    })),
  })

  const query = container.resolve(ContainerRegistrationKeys.QUERY)
  const { data: items } = await query.graph({ entity: 'inventory_item', fields: ['id'] })
  await run(flows.createInventoryLevelsWorkflow, {
    inventory_levels: items.map(item => ({ location_id: location.id, inventory_item_id: item.id, stocked_quantity: 1000000 })),
  })
  const seeded = { key: key.token, region: region.id, variants: products.map(p => p.variants[0].id) }
  writeFileSync(process.env.SEED, JSON.stringify(seeded))
}
