//! `mutate`.

use expect_test::{Expect, expect};

use crate::fixture::Fixture;

fn limits() -> Fixture {
    let mut zoo = Fixture::zoo();
    zoo.run(
        r#"{"op":"insert","table":"Limits","row":{"small":3,"numbers":["set",[1,2,3]],"real":1.5,"reals":["set",[0,2]],"big":7,"some":"x"}}"#,
    );
    zoo
}

fn check(table: &str, columns: &str, cases: &[(&str, Expect)]) {
    for (mutations, expected) in cases {
        let mut zoo = limits();
        zoo.run(r#"{"op":"insert","table":"Keeper","row":{"cfg":["map",[["k","v"],["l","w"]]]}}"#);
        let result = zoo.run(&format!(
            r#"{{"op":"mutate","table":"{table}","where":[],"mutations":[{mutations}]}},
               {{"op":"select","table":"{table}","where":[],"columns":[{columns}]}}"#
        ));
        expected.assert_eq(&result);
    }
}

#[test]
fn integers() {
    check(
        "Limits",
        r#""small","big","numbers""#,
        &[
            (
                r#"["small","+=",7],["small","-=",1]"#,
                expect![[
                    r#"[{"count":1},{"rows":[{"small":9,"big":7,"numbers":["set",[1,2,3]]}]}]"#
                ]],
            ),
            (
                r#"["small","+=",8]"#,
                expect![[
                    r#"[{"details":"11 is not in the valid range -5 to 10 (inclusive)","error":"constraint violation"},null]"#
                ]],
            ),
            (
                r#"["small","+=",8],["small","-=",8]"#,
                expect![[
                    r#"[{"details":"11 is not in the valid range -5 to 10 (inclusive)","error":"constraint violation"},null]"#
                ]],
            ),
            (
                r#"["small","*=",-1],["big","*=",3],["big","/=",-2],["big","%=",-4]"#,
                expect![[
                    r#"[{"count":1},{"rows":[{"small":-3,"big":-2,"numbers":["set",[1,2,3]]}]}]"#
                ]],
            ),
            (
                r#"["small","*=",-1],["small","*=",0]"#,
                expect![[
                    r#"[{"count":1},{"rows":[{"small":0,"big":7,"numbers":["set",[1,2,3]]}]}]"#
                ]],
            ),
            (
                r#"["big","/=",0]"#,
                expect![[r#"[{"details":"Division by zero.","error":"domain error"},null]"#]],
            ),
            (
                r#"["big","%=",0]"#,
                expect![[r#"[{"details":"Division by zero.","error":"domain error"},null]"#]],
            ),
            (
                r#"["big","+=",9223372036854775807]"#,
                expect![[
                    r#"[{"details":"Result of \"+=\" operation is out of range.","error":"range error"},null]"#
                ]],
            ),
            (
                r#"["big","-=",6],["big","*=",9223372036854775807]"#,
                expect![[
                    r#"[{"count":1},{"rows":[{"small":3,"big":9223372036854775807,"numbers":["set",[1,2,3]]}]}]"#
                ]],
            ),
            (
                r#"["big","*=",-4000000000000000000],["big","*=",-3]"#,
                expect![[
                    r#"[{"details":"Result of \"*=\" operation is out of range.","error":"range error"},null]"#
                ]],
            ),
            (
                r#"["big","-=",8],["big","*=",9223372036854775807],["big","-=",1],["big","/=",-1]"#,
                expect![[
                    r#"[{"details":"Result of \"/=\" operation is out of range.","error":"range error"},null]"#
                ]],
            ),
            (
                r#"["big","-=",8],["big","*=",9223372036854775807],["big","-=",1],["big","%=",-1]"#,
                expect![[
                    r#"[{"details":"Result of \"%=\" operation is out of range.","error":"range error"},null]"#
                ]],
            ),
            (
                r#"["numbers","*=",10]"#,
                expect![[
                    r#"[{"count":1},{"rows":[{"small":3,"big":7,"numbers":["set",[10,20,30]]}]}]"#
                ]],
            ),
            (
                r#"["numbers","*=",50]"#,
                expect![[
                    r#"[{"details":"150 is greater than maximum allowed value 100","error":"constraint violation"},null]"#
                ]],
            ),
            (
                r#"["numbers","/=",2]"#,
                expect![[
                    r#"[{"details":"Result of \"/=\" operation contains duplicates.","error":"constraint violation"},null]"#
                ]],
            ),
            (
                r#"["big","+=",1.5]"#,
                expect![[
                    r#"[{"details":"expected integer","error":"syntax error","syntax":"1.5"},null]"#
                ]],
            ),
        ],
    );
}

#[test]
fn reals() {
    check(
        "Limits",
        r#""real","reals""#,
        &[
            (
                r#"["real","/=",2],["reals","+=",0.25]"#,
                expect![[r#"[{"count":1},{"rows":[{"real":0.75,"reals":["set",[0.25,2.25]]}]}]"#]],
            ),
            (
                r#"["real","/=",0]"#,
                expect![[r#"[{"details":"Division by zero.","error":"domain error"},null]"#]],
            ),
            (
                r#"["real","*=",1e308],["real","*=",10]"#,
                expect![[
                    r#"[{"details":"Result of \"*=\" operation is out of range.","error":"range error"},null]"#
                ]],
            ),
            (
                r#"["reals","*=",-5]"#,
                expect![[r#"[{"count":1},{"rows":[{"real":1.5,"reals":["set",[-10,0]]}]}]"#]],
            ),
            (
                r#"["real","%=",1]"#,
                expect![[
                    r#"[{"details":"Type mismatch: \"%=\" operator may not be applied to column real of type real.","error":"syntax error","syntax":"[\"real\",\"%=\",1]"},null]"#
                ]],
            ),
        ],
    );
}

#[test]
fn sets_and_maps() {
    check(
        "Limits",
        r#""numbers","some""#,
        &[
            (
                r#"["numbers","insert",["set",[2,9]]]"#,
                expect![[r#"[{"count":1},{"rows":[{"numbers":["set",[1,2,3,9]],"some":"x"}]}]"#]],
            ),
            (
                r#"["numbers","insert",["set",[8,9]]]"#,
                expect![[
                    r#"[{"details":"Attempted to store 5 elements in set of up to 4 integers.","error":"constraint violation"},null]"#
                ]],
            ),
            (
                r#"["numbers","insert",["set",[8,9]]],["numbers","delete",1]"#,
                expect![[
                    r#"[{"details":"Attempted to store 5 elements in set of up to 4 integers.","error":"constraint violation"},null]"#
                ]],
            ),
            (
                r#"["numbers","insert",101]"#,
                expect![[
                    r#"[{"details":"101 is greater than maximum allowed value 100","error":"constraint violation"},null]"#
                ]],
            ),
            (
                r#"["numbers","delete",["set",[1,2,5,6,7,8]]]"#,
                expect![[r#"[{"count":1},{"rows":[{"numbers":3,"some":"x"}]}]"#]],
            ),
            (
                r#"["some","delete","x"],["some","insert","y"]"#,
                expect![[
                    r#"[{"details":"Attempted to store 0 elements in set of 1 to 3 strings.","error":"constraint violation"},null]"#
                ]],
            ),
            (
                r#"["some","insert","y"],["some","delete","x"]"#,
                expect![[r#"[{"count":1},{"rows":[{"numbers":["set",[1,2,3]],"some":"y"}]}]"#]],
            ),
            (
                r#"["some","insert",["set",[]]]"#,
                expect![[r#"[{"count":1},{"rows":[{"numbers":["set",[1,2,3]],"some":"x"}]}]"#]],
            ),
        ],
    );
    check(
        "Keeper",
        r#""cfg""#,
        &[
            (
                r#"["cfg","insert",["map",[["k","z"],["m","z"]]]]"#,
                expect![[
                    r#"[{"count":1},{"rows":[{"cfg":["map",[["k","v"],["l","w"],["m","z"]]]}]}]"#
                ]],
            ),
            (
                r#"["cfg","delete",["map",[["k","z"],["l","w"]]]]"#,
                expect![[r#"[{"count":1},{"rows":[{"cfg":["map",[["k","v"]]]}]}]"#]],
            ),
            (
                r#"["cfg","delete",["set",["k","zz"]]]"#,
                expect![[r#"[{"count":1},{"rows":[{"cfg":["map",[["l","w"]]]}]}]"#]],
            ),
            (
                r#"["cfg","delete","l"]"#,
                expect![[r#"[{"count":1},{"rows":[{"cfg":["map",[["k","v"]]]}]}]"#]],
            ),
            (
                r#"["cfg","delete",["map",[["k",5]]]]"#,
                expect![[
                    r#"[{"details":"expected string","error":"syntax error","syntax":"[\"map\",[[\"k\",5]]]"},null]"#
                ]],
            ),
            (
                r#"["cfg","insert","k"]"#,
                expect![[
                    r#"[{"details":"expected [\"map\", <array>]","error":"syntax error","syntax":"\"k\""},null]"#
                ]],
            ),
        ],
    );
}

#[test]
fn faults() {
    check(
        "Keeper",
        r#""name""#,
        &[
            (
                "5",
                expect![[
                    r#"[{"details":"Parse error in mutation.","error":"syntax error","syntax":"5"},null]"#
                ]],
            ),
            (
                r#"["age","+="]"#,
                expect![[
                    r#"[{"details":"Parse error in mutation.","error":"syntax error","syntax":"[\"age\",\"+=\"]"},null]"#
                ]],
            ),
            (
                r#"["zz","+=",1]"#,
                expect![[
                    r#"[{"details":"No column zz in table Keeper.","error":"unknown column","syntax":"[\"zz\",\"+=\",1]"},null]"#
                ]],
            ),
            (
                r#"["badge","+=",1]"#,
                expect![[
                    r#"[{"details":"Cannot mutate immutable column badge in table Keeper.","error":"constraint violation","syntax":"[\"badge\",\"+=\",1]"},null]"#
                ]],
            ),
            (
                r#"["_uuid","insert",1]"#,
                expect![[
                    r#"[{"details":"Cannot mutate immutable column _uuid in table Keeper.","error":"constraint violation","syntax":"[\"_uuid\",\"insert\",1]"},null]"#
                ]],
            ),
            (
                r#"["age","++",1]"#,
                expect![[r#"[{"details":"No mutator named ++.","error":"unknown mutator"},null]"#]],
            ),
            (
                r#"["name","+=","x"]"#,
                expect![[
                    r#"[{"details":"Type mismatch: \"+=\" operator may not be applied to column name of type string.","error":"syntax error","syntax":"[\"name\",\"+=\",\"x\"]"},null]"#
                ]],
            ),
            (
                r#"["name","insert","x"]"#,
                expect![[
                    r#"[{"details":"Type mismatch: \"insert\" operator may not be applied to column name of type string.","error":"syntax error","syntax":"[\"name\",\"insert\",\"x\"]"},null]"#
                ]],
            ),
            (
                r#"["cfg","+=","x"]"#,
                expect![[
                    r#"[{"details":"Type mismatch: \"+=\" operator may not be applied to column cfg of type map of (string, string) pairs.","error":"syntax error","syntax":"[\"cfg\",\"+=\",\"x\"]"},null]"#
                ]],
            ),
            (
                r#"["age","+=","x"]"#,
                expect![[
                    r#"[{"details":"expected integer","error":"syntax error","syntax":"\"x\""},null]"#
                ]],
            ),
            (
                r#"["age","+=",1]"#,
                expect![[r#"[{"count":1},{"rows":[{"name":""}]}]"#]],
            ),
            (
                r#"["age","insert",4],["age","*=",2]"#,
                expect![[r#"[{"count":1},{"rows":[{"name":""}]}]"#]],
            ),
            ("", expect![[r#"[{"count":1},{"rows":[{"name":""}]}]"#]]),
        ],
    );
}
