// Texts of the page's opening.

export const hero = {
  en: {
    heroTitle: "The network fails. The cart stays right.",
    heroLead: "An API and service for the carts and subscriptions of digital shops. Give each change a key: sent again, it counts once.",
    heroStory: "Demonstration: a phone adds an item to two carts. The response gets lost, so the phone sends the request again. A naive cart counts 2. This service recognizes the request by its key, and still counts 1.",
    heroTap: "A shopper taps Add, once.",
    heroLost: "Both carts count 1. The response gets lost.",
    heroAgain: "So the phone sends it again.",
    heroSame: "Same key: counted once.",
    heroOurs: "This service",
    heroNaive: "A naive cart",
    heroReplayed: "same key: replayed",
    heroTwice: "counted twice",
    heroNot: ", not ",
    heroPlay: "Play",
    heroFailed: "The demonstration did not work. The log of requests says why.",
  },

  ar: {
    heroTitle: "تنقطع الشبكة، وتبقى السلة صحيحة.",
    heroLead: "واجهة برمجية وخدمة لسلات المتاجر الرقمية واشتراكاتها. امنح كل تغيير مفتاحًا: إن أُرسل ثانيةً، حُسب مرة واحدة.",
    heroStory: "عرض: يضيف هاتف منتجًا إلى سلتين. يضيع الرد، فيعيد الهاتف إرسال الطلب. السلة العادية تحسب 2، أما هذه الخدمة فتتعرف على الطلب من مفتاحه وتبقى على 1.",
    heroTap: "ينقر المتسوق «إضافة» مرة واحدة.",
    heroLost: "في كل سلة 1، لكن الرد يضيع.",
    heroAgain: "فيعيد الهاتف إرسال الطلب.",
    heroSame: "المفتاح نفسه: يُحسب مرة واحدة.",
    heroOurs: "هذه الخدمة",
    heroNaive: "سلة عادية",
    heroReplayed: "المفتاح نفسه: مكرر",
    heroTwice: "حُسب مرتين",
    heroNot: "، لا ",
    heroPlay: "تشغيل",
    heroFailed: "لم ينجح العرض، وسجل الطلبات يبيّن السبب.",
  },
};
