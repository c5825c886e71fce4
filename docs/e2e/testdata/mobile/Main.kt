// Uses the client of docs/mobile.md: as the page does, offline, after a restart, and while another connection follows.
class Memory(private val items: MutableMap<String, String> = mutableMapOf()) : Store {
    override fun get(name: String) = items[name]
    override fun set(name: String, value: String) { items[name] = value }
    fun copy() = Memory(items.toMutableMap())
}

val count = Regex("\"count\":\\d+")
fun show(answer: Answer?) = println("${answer?.status} ${count.find(answer?.body.orEmpty())?.value}")

fun main(args: Array<String>) {
    val (url, old) = args
    val shown = java.util.concurrent.CountDownLatch(3)
    kotlin.concurrent.thread(isDaemon = true) { shop(Memory()) { show(it); shown.countDown() } }
    shown.await()

    val store = Memory()
    val offline = Cart("http://127.0.0.1:1", "pk_demo", store)
    offline.change("/ops", """{"ops": [{"op": "add", "product_id": 2, "qty": 2}]}""")
    offline.change("/ops", """{"ops": [{"op": "edit", "item": "2", "quantity": 9}]}""")
    for (again in 1..2) println("wait ${offline.send { _, _ -> error("nobody answers") }}")
    println("${store["outbox"]!!.lines().count { " 0 /ops" in it }} not tried")

    val cart = Cart(url, "pk_demo", store.copy()) // after a restart
    val read = cart.read()
    println("${read?.status}, then ${cart.read(read?.etag)?.status}")
    fun send() { while (true) Thread.sleep(1000 * (cart.send { _, answer -> show(answer) } ?: return)) }
    send()
    val events = cart.events()
    val versions = java.util.concurrent.CopyOnWriteArrayList<String>() // an event can come before or after the answer
    val following = kotlin.concurrent.thread {
        runCatching { events.inputStream.bufferedReader().forEachLine { if (it.startsWith("data")) versions += it } }
    }
    Thread.sleep(1000)
    cart.change("/ops", """{"ops": [{"op": "clear"}]}""")
    send()
    Thread.sleep(1000)
    events.disconnect()
    following.join(3000)
    println("$versions ${following.isAlive}")

    val late = Memory()
    late["outbox"] = "key $old /ops {}\n"
    Cart(url, "pk_demo", late).send { _, answer -> println("$answer after a day") }
}
