// SAMPLE DATA: the products of sample store 1. The service has no call for products; a
// storefront has its catalog from elsewhere. These prices are only for the product
// cards. The cart's prices come from the service. Names are in English and Arabic.

export const currency = "SAR";

export const products = [
  { id: 1, name: { en: "Game credit", ar: "رصيد ألعاب" }, slug: "game-credit", price: 49.5 },
  { id: 2, name: { en: "Concert ticket", ar: "تذكرة حفل" }, slug: "concert-ticket", price: 10, stock: 3 },
  {
    id: 4, name: { en: "Pro membership", ar: "العضوية الاحترافية" }, slug: "pro-membership", price: 0,
    plans: [{ id: 41, duration: "monthly", price: 20 }, { id: 42, duration: "annually", price: 200 }],
  },
  {
    id: 5, name: { en: "Streaming account", ar: "حساب بث" }, slug: "streaming-account", price: 15,
    fields: [
      { name: "Account email", required: true },
      { name: "Region", options: [
        { code: "sa", name: { en: "Saudi Arabia", ar: "السعودية" }, price: 0 },
        { code: "us", name: { en: "United States", ar: "الولايات المتحدة" }, price: 5.25 },
      ] },
    ],
  },
  { id: 7, name: { en: "Loot box", ar: "صندوق غنائم" }, slug: "loot-box", price: 3.33, least: 2, most: 5 },
  { id: 8, name: { en: "Gift card", ar: "بطاقة هدية" }, slug: "gift-card", price: 25 },
  {
    id: 9, name: { en: "Fan club", ar: "نادي المعجبين" }, slug: "fan-club", price: 0,
    plans: [
      { id: 91, duration: "monthly", price: 10 },
      { id: 92, duration: "annually", label: { en: "1 year for the price of 10 months", ar: "سنة بسعر 10 أشهر" }, price: 100 },
    ],
  },
  { id: 10, name: { en: "Sticker pack", ar: "حزمة ملصقات" }, slug: "sticker-pack", price: 2, least: 5, step: 5 },
  { id: 6, name: { en: "Limited skin", ar: "مظهر محدود" }, slug: "limited-skin", price: 7.77, stock: 0 },
  { id: 3, name: { en: "Old wallpaper pack", ar: "حزمة خلفيات قديمة" }, slug: "old-wallpaper-pack", price: 5, inactive: true },
];

/** countries are those that the sample has rates for. */
export const countries = (
  "AE AT BE BG BH CH CY CZ DE DK EE ES FI FR GB GR HR HU IE IT KW LT LU LV MT NL OM PL PT QA RO SA SE SI SK"
).split(" ");

export const coupons = ["TEN", "FIVE", "GAMES", "ONCE", "EXTRA", "PLUS", "USED", "LATER", "OLD"];
