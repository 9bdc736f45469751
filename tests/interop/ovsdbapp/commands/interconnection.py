"""The play of the OVN_IC_Northbound API: transit switches."""


def perform(play):
    do = play.do
    play.scene("transit switches")
    first = do.ts_add("ts1", external_ids={"k": "v"})
    do.ts_add("ts1")
    do.ts_add("ts1", may_exist=True)
    do.ts_add("ts2", may_exist=True, other_config={"a": "b"})
    do.ts_add("bad", nosuch="x")
    do.ts_list()
    do.ts_get("ts2")
    do.ts_get(first.uuid)
    do.ts_get("nosuch")
    play.contents()
    do.ts_del("nosuch")
    do.ts_del("nosuch", if_exists=True)
    do.ts_del("ts1")
    do.ts_del(do.ts_get("ts2").uuid, if_exists=True)
    play.contents()
