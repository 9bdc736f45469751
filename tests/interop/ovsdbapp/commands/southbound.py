"""The play of the Southbound API: chassis, their encapsulations, and the binding of ports."""


def chassis(play):
    do = play.do
    play.scene("chassis")
    do.chassis_add("hv1", ["geneve"], "192.0.2.1", hostname="host1")
    do.chassis_add("hv1", ["geneve"], "192.0.2.9")
    do.chassis_add("hv1", ["geneve"], "192.0.2.9", may_exist=True)
    do.chassis_add("hv2", ["geneve", "vxlan"], "192.0.2.2", external_ids={"b": "2", "a": "1"}, transport_zones=["z2", "z1"])
    # With may_exist the command looks the row up and fails when it is not there, unlike the other APIs.
    do.chassis_add("hv3", ["stt"], "192.0.2.3", may_exist=True)
    do.chassis_add("hv4", ["nosuch"], "192.0.2.4")
    do.chassis_add("hv4", ["geneve"], 7)
    do.chassis_add("hv4", ["geneve"], "192.0.2.1")
    do.chassis_add("hv4", ["geneve"], "192.0.2.4", nosuch="x")
    do.chassis_add("hv4", "gv", "192.0.2.4")
    do.chassis_list()
    private = do.db_create_row("Chassis_Private", name="hv2")
    do.db_set("Chassis_Private", private.uuid, ("chassis", play.api.lookup("Chassis", "hv2").uuid))
    play.contents()


def bindings(play):
    do = play.do
    play.scene("bindings")
    with play.api.transaction(check_error=True) as txn:
        datapath = txn.add(play.api.db_create_row("Datapath_Binding", tunnel_key=1))
        for number in (1, 2, 3):
            txn.add(play.api.db_create_row("Port_Binding", datapath=datapath, logical_port=f"lsp{number}", tunnel_key=number))
    play.settle()
    do.lsp_bind("lsp1", "hv1")
    do.lsp_bind("lsp1", "hv1")
    do.lsp_bind("lsp1", "hv2", may_exist=True)
    do.lsp_bind("lsp2", "hv2")
    do.lsp_bind("nosuch", "hv1")
    do.lsp_bind("lsp3", "nosuch")
    play.contents()
    do.db_create("MAC_Binding", logical_port="lsp1", ip="10.0.0.1", mac="00:00:00:00:00:01", datapath=play.api.lookup("Port_Binding", "lsp1").datapath.uuid)
    do.db_get("MAC_Binding", "10.0.0.1", "mac")
    do.db_get("Port_Binding", "lsp1", "datapath")
    do.db_get("Port_Binding", "lsp1", "chassis")
    do.db_get("Port_Binding", "lsp3", "chassis")
    do.db_find("Port_Binding", ("chassis", "=", play.api.lookup("Chassis", "hv1").uuid), columns=["logical_port"])
    do.db_find("Port_Binding", ("up", "=", True), columns=["logical_port", "up"])
    do.lsp_unbind("lsp1")
    do.lsp_unbind("lsp1")
    do.lsp_unbind("lsp2", if_exists=True)
    do.lsp_unbind("nosuch")
    do.lsp_unbind("nosuch", if_exists=True)
    play.contents()


def removal(play):
    do = play.do
    play.scene("removal of chassis")
    do.lsp_bind("lsp3", "hv2")
    do.chassis_del("nosuch")
    do.chassis_del("nosuch", if_exists=True)
    do.chassis_del("hv2")
    do.chassis_del("hv1", if_exists=True)
    play.contents()


def perform(play):
    chassis(play)
    bindings(play)
    removal(play)
