// SAMPLE DATA: the products of sample store 1. The service has no call for products; a
// storefront has its catalog from elsewhere. These prices are only for the product
// cards. The cart's prices come from the service.

export const currency = "SAR";

export const products = [
  { id: 1, name: "Game credit", slug: "game-credit", price: 49.5 },
  { id: 2, name: "Gift card", slug: "gift-card", price: 10, stock: 3 },
  {
    id: 4, name: "Pro membership", slug: "pro-membership", price: 0,
    plans: [{ id: 41, duration: "monthly", price: 20 }, { id: 42, duration: "annually", price: 200 }],
  },
  {
    id: 5, name: "Streaming account", slug: "streaming-account", price: 15,
    fields: [
      { name: "Account email", required: true },
      { name: "Region", options: [{ code: "sa", name: "Saudi Arabia", price: 0 }, { code: "us", name: "United States", price: 5.25 }] },
    ],
  },
  { id: 7, name: "Loot box", slug: "loot-box", price: 3.33, least: 2, most: 5 },
  { id: 6, name: "Limited skin", slug: "limited-skin", price: 7.77, stock: 0 },
  { id: 3, name: "Old wallpaper pack", slug: "old-wallpaper-pack", price: 5, inactive: true },
];

export const coupons = ["TEN", "FIVE", "OLD"];
