// Texts of the whole page.

export const page = {
  en: {
    itself: "English",
    title: "Playground · Merchant Commerce Service",
    skip: "Skip to content",
    skipToLog: "Skip to the requests",
    playground: "Playground",
    areas: "Sections",
    tabStore: "Shop",
    tabSubscriptions: "Subscriptions",

    busy: "{message} Retrying in {n} s…",
    offline: "The service is unreachable. Try again later.",
    again: "Try again",
  },

  ar: {
    itself: "العربية",
    title: "ساحة التجربة · خدمة التجارة",
    skip: "انتقل إلى المحتوى",
    skipToLog: "انتقل إلى الطلبات",
    playground: "ساحة التجربة",
    areas: "الأقسام",
    tabStore: "المتجر",
    tabSubscriptions: "الاشتراكات",

    busy: "{message} إعادة المحاولة بعد {n} ث…",
    offline: "تعذّر الوصول إلى الخدمة. أعد المحاولة لاحقًا.",
    again: "إعادة المحاولة",
  },
};
