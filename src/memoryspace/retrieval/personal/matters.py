"""Matters: topics of daily life, which link a question and an answer that share no word.

"Where do I work?" and "they made me shift manager" are on the same matter. The table is small on
purpose: a word that fits several matters, or none, distinguishes nothing.
"""

from __future__ import annotations

import re

from ..text.analysis import tokens
from .people import as_relation

_ENGLISH = {
    "home": "live lives lived house flat apartment bungalow condo cottage landlord lease rent rented "
    "renting town city village suburb address based hometown neighbourhood neighborhood settled "
    "relocated bedroom mortgage residence country moved move moving",
    "work": "work working job employer employed employee occupation profession career boss manager "
    "company firm office salary colleague coworker position role shift hired fired redundant resign "
    "resigned retired retire notice promoted promotion freelance freelancer business startup "
    "trainee apprentice intern earn unemployed nurse teacher engineer driver lawyer chef analyst "
    "therapist mechanic designer developer programmer accountant clerk barista waiter waitress "
    "cashier carpenter plumber electrician farmer writer editor consultant technician operator "
    "officer ceo cto leader supervisor physio librarian pharmacist paramedic pilot controller "
    "payroll receptionist hairdresser builder baker shop",
    "study": "study studying studied student school university uni college degree course class exam "
    "masters master phd thesis graduate graduated major campus lesson tutor semester",
    "partner": "wife husband hubby missus spouse partner girlfriend boyfriend gf bf fiance fiancee "
    "married marry wedding engaged engagement divorce divorced separated separating single dating "
    "ex relationship together",
    "child": "kid child children son daughter lad baby toddler newborn pregnant pregnancy due eldest "
    "youngest twin",
    "family": "mum mom mother dad father parent brother sister sis bro sibling grandma grandpa gran "
    "granny nan grandmother grandfather grandson granddaughter grandchild grandkid uncle aunt auntie "
    "cousin nephew niece family",
    "pet": "pet dog puppy pup cat kitten ferret hamster rabbit bunny bird budgie parrot fish horse "
    "pony hen chicken turtle tortoise snake lizard gecko greyhound labrador terrier poodle collie "
    "spaniel mutt vet breed",
    "health": "allergy allergic intolerant intolerance coeliac celiac asthma diabetes diabetic ill "
    "illness disease condition diagnosed doctor gp hospital surgery operation operated pain hurts "
    "knee hip heart blood pressure migraine injury injured therapy anxiety depression eyesight "
    "eye sick health symptom",
    "medicine": "pill tablet medicine medication meds drug dose dosage mg prescribed prescription "
    "antibiotic insulin inhaler vitamin painkiller injection take taking",
    "food": "eat eating ate food meal diet vegetarian vegan meat dairy gluten pork halal kosher cook "
    "cooking dinner lunch breakfast snack dish recipe fruit vegetable spicy sweet savoury herb "
    "topping taste pescatarian serve steak beef chicken bacon ham sausage burger pizza bread cheese egg "
    "cake nut peanut shellfish",
    "drink": "drink drinking coffee tea beer wine alcohol sober espresso latte caffeine booze pub "
    "water milk beverage juice",
    "smoking": "smoke smoking smoked cigarette vape vaping nicotine",
    "sport": "run running ran swim swimming gym yoga football soccer tennis climb climbing "
    "hike hiking cycling marathon exercise train training workout surf surfing sport pilates ski "
    "dance dancing hobby chess paint painting knit knitting guitar piano bass instrument choir band",
    "name": "name named called call calls nickname",
    "age": "old age aged birthday born birth turn turned turning",
    "trip": "trip travel travelling flight fly flew flying holiday vacation visit hotel airport "
    "abroad tour cruise booked",
    "money": "pay paid cost price budget money debt loan saving spend bill bank",
    "time": "monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun "
    "weekend morning evening night every daily weekly schedule hour when day",
    "vehicle": "car van truck lorry bike motorbike drive driving bus scooter vehicle licence license",
    "answers": "answer reply respond format bullet emoji spelling language short brief sentence tone "
    "unit fahrenheit celsius always never",
}
_CHINESE = {
    "home": "住 搬家 搬到 搬去 搬回 搬来 搬进 搬出 房子 房东 租的 租了 租房 公寓 城市 老家 定居 小区 宿舍",
    "work": "工作 上班 职业 公司 岗位 职位 职务 干什么 做什么 干啥 做啥 辞职 辞工 升职 裁员 失业 下岗 打工 单位 老板 领导 同事 "
    "工资 月薪 退休 跳槽 入职 转行 全职 兼职 自由职业 创业 护士 老师 医生 司机 工程师 会计 程序员 柜员 厨师 店员 领班 经理 "
    "主管 剪辑 画师 调度 安全员 律师 销售 快递 外卖 保安 夜班 白班 早班 三班倒 店",
    "study": "读书 读研 读博 上学 学校 大学 专业 考上 考试 考研 毕业 课 年级 论文 培训 班",
    "partner": "老婆 妻子 老公 丈夫 爱人 对象 男朋友 女朋友 男友 女友 媳妇 那口子 老伴 结婚 领证 离婚 离了 订婚 分手 在一起 "
    "单身 恋爱 未婚 前夫 前妻 再婚 嫁 相亲 不婚",
    "child": "孩子 儿子 女儿 闺女 宝宝 娃 小孩 怀孕 预产期 男宝 女宝 男孩 女孩",
    "family": "妈 爸 父 母 哥 姐 弟 妹 爷爷 奶奶 外公 外婆 姥 婆婆 公公 岳 叔 姨 舅 姑 家人 兄弟",
    "pet": "宠物 狗 猫 鸟 兔 仓鼠 鹦鹉 乌龟 蛇 画眉 犬 养了 养的 养只 柯基 金毛 遛",
    "health": "过敏 病 医生 医院 体检 痛 疼 血压 血糖 尿酸 手术 受伤 骨裂 骨折 怀孕 颈椎 腰 胃 心脏 毛病 失眠 抑郁 焦虑 色盲 "
    "诊断 查出",
    "medicine": "药 一片 剂量 服用 打针 疫苗 换成 维生素 胰岛素",
    "food": "吃 饭 菜 肉 素 辣 甜 水果 早餐 晚餐 午餐 火锅 口味 餐 忌口 饮食 鱼 海鲜",
    "drink": "喝 咖啡 茶 酒 饮料 牛奶",
    "smoking": "抽烟 吸烟 戒烟 烟",
    "sport": "运动 跑步 游泳 球 健身 瑜伽 爬山 钓 锻炼 太极 八段锦 爱好 兴趣 书法 画画 跳舞 钢琴 吉他 徒步",
    "name": "叫 名字 全名 大名 小名 称呼 外号 姓",
    "age": "岁 多大 年纪 年龄 生日 今年 出生",
    "trip": "旅行 旅游 机票 出差 自驾 出发 酒店 度假 回国 回来 出国",
    "money": "钱 块 元 房租 贷款 存款 花了 涨",
    "time": "周一 周二 周三 周四 周五 周六 周日 周末 星期 礼拜 每天 每周 早上 晚上 上午 下午 几点 什么时候 时间 固定",
    "vehicle": "车 驾照 摩托 地铁 公交",
    "answers": "回答 回复 说话 语气 简洁 感叹号 语言 中文 英文 文案 以后",
}

MATTERS = tuple(_ENGLISH)

_BITS = {name: 1 << at for at, name in enumerate(MATTERS)}
_HAN = re.compile("[\u4e00-\u9fff]")
_FOR_A_LIVING = re.compile(r"\b(?:for a living|make a living)\b")


def _by_word() -> dict[str, int]:
    found: dict[str, int] = {}
    for name, words in _ENGLISH.items():
        for stem in tokens(words):
            found[stem] = found.get(stem, 0) | _BITS[name]
    return found


def _by_term() -> dict[str, int]:
    found: dict[str, int] = {}
    for name, terms in _CHINESE.items():
        for term in terms.split():
            found[term] = found.get(term, 0) | _BITS[name]
    return found


def _pattern(term: str) -> str:
    """Return the pattern for a term: 住 in 记不住 and 停住 does not mean "to live"."""
    return "(?<![不得记停站忍抓拦留稳])住" if term == "住" else as_relation(term)


_WORDS = _by_word()
_TERMS = _by_term()
# A lookahead, so that a term inside another ("男朋友" and "朋友") is found as well.
_TERM = re.compile(f"(?=({'|'.join(map(_pattern, sorted(_TERMS, key=len, reverse=True)))}))")


def matters_in(text: str, stems: frozenset[str] | list[str]) -> int:
    """Return the matters that a text touches, as the bits of a number; ``stems`` are its words."""
    found = 0
    for stem in stems:
        found |= _WORDS.get(stem, 0)
    if _HAN.search(text):
        for match in _TERM.finditer(text):
            found |= _TERMS[match.group(1)]
    if "living" in text and _FOR_A_LIVING.search(text):
        found = found & ~_BITS["home"] | _BITS["work"]
    return found


def kin_matters(people: frozenset[str]) -> int:
    """Return the matters that having such people is about: a husband tells of a marriage."""
    found = 0
    for each in people:
        found |= _WORDS.get(each, 0)
    return found & _CLOSE


NAME = _BITS["name"]
_CLOSE = sum(_BITS[name] for name in ("partner", "child", "family", "pet"))


def names_of(matters: int) -> list[str]:
    """Return the names of matters."""
    return [name for name, bit in _BITS.items() if matters & bit]


def count(matters: int) -> int:
    """Return the number of matters in a bit set."""
    return matters.bit_count()


# A change on one of these ends the former state; of the others there may be any number at once.
CHANGING = sum(
    _BITS[name]
    for name in (
        *("home", "work", "partner", "medicine", "smoking", "drink", "name", "pet", "study"),
        *("sport", "food", "health", "child", "time", "trip", "vehicle"),
    )
)
